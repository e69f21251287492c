module github.com/reprise-go/reprise/reprisetest

go 1.25.0

replace github.com/reprise-go/reprise/core => ../core
