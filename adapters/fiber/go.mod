module github.com/reprise-go/reprise/adapters/fiber

go 1.25.0
