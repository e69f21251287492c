module github.com/reprise-go/reprise/store/internal

go 1.25.0
