"""What several test modules need and users do not."""
