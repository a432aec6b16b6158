//go:build !linux && !windows && !darwin

package main

func openSystem(string) (ring, error) { return nil, coded(codeNoBackend, nil) }
