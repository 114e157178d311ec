"""Clients as processes of their own, which say how much processor time they have used."""
