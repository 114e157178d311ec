"""Programs that write parts of this project, which are then part of it."""
