"""Many runs as pages: what stands on each (`model`), served live (`server`) or written as files (`files`)."""
