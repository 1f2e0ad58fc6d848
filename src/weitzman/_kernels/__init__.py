"""Compiled code: arrays in, arrays out. Kernels check nothing and import only each other."""
