"""Results that a client keeps for as long as the server allows (2026-07-28).

Begin with `cache` (what is kept, and for whom), then `cached_responses` (which requests it
answers).
"""
