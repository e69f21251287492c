module github.com/reprise-go/reprise/core

go 1.25.0
