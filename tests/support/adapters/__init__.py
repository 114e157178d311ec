"""What tests of adapters share: loops, talks, and one handler for all of them."""
