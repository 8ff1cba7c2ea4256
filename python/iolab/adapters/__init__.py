"""What touches the outside: this machine, the simulator, files of other tools, the store, and the loop over trials."""
