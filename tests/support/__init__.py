"""What several tests share: block devices to try things on, what a test left behind, the command line."""
