module github.com/reprise-go/reprise/adapters/echo

go 1.25.0
