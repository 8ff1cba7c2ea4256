"""What a change of the kernel costs on the paths of the suite: kernels made, each path counted, the report."""
