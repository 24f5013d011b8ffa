"""The engine: seams, flows, drivers, loops."""
