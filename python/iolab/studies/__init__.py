"""What a user asks for: runs, searches, reproductions, traces."""
