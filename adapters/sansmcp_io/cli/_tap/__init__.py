"""The commands `sansmcp tap` and `lint`: watch a conversation, record it, and judge a recorded one.

Begin with `stdio_tap`, `http_tap` and `lint`.
"""
