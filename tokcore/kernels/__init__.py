"""How kernels are compiled, and the primitives over bytes that they share."""
