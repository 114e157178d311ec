"""Clients that are authorized, on each loop and without one."""
