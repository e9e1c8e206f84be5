"""Recurrent layers that run as one op."""
RULES = {}
