module github.com/reprise-go/reprise/store/redis

go 1.26.0
