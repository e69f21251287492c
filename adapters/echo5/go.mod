module github.com/reprise-go/reprise/adapters/echo5

go 1.25.0

replace github.com/reprise-go/reprise/core => ../../core
