"""Machines that try much: state machines, explorations, orders, and the bounds that they check."""
