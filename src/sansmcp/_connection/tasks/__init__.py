"""Tasks: requests whose result comes later.

Begin with `owner` (the tasks that this side runs for the peer) and `follower` (those that the peer
runs for this side). The owner works with `operations` (methods of tasks), `questions` (what a task
asks), `subscriptions` (who wants to hear of it), `board` (all tasks of a connection or an
endpoint), `store` (tasks that live elsewhere) and `records` (one task). `settings` has the limits.
"""
