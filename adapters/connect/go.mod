module github.com/reprise-go/reprise/adapters/connect

go 1.25.0

replace github.com/reprise-go/reprise/core => ../../core
