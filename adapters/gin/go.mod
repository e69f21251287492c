module github.com/reprise-go/reprise/adapters/gin

go 1.25.0
