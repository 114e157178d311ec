"""Clients as processes of their own, which print their processor time."""
