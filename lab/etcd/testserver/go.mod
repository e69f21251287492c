module github.com/reprise-go/reprise/lab/etcd/testserver

go 1.26.0

require (
	github.com/reprise-go/reprise/conformance v0.0.0
	github.com/reprise-go/reprise/core v0.0.0
	github.com/reprise-go/reprise/lab v0.0.0
	github.com/reprise-go/reprise/lab/etcd v0.0.0
)

require (
	github.com/reprise-go/reprise/store/etcd v0.0.0 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/andybalholm/brotli v1.2.0 // indirect
	github.com/bytedance/sonic v1.13.2 // indirect
	github.com/bytedance/sonic/loader v0.2.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/base64x v0.1.5 // indirect
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/coreos/go-systemd/v22 v22.5.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/gabriel-vasile/mimetype v1.4.8 // indirect
	github.com/gin-contrib/sse v1.0.0 // indirect
	github.com/gin-gonic/gin v1.10.0 // indirect
	github.com/go-playground/locales v0.14.1 // indirect
	github.com/go-playground/universal-translator v0.18.1 // indirect
	github.com/go-playground/validator/v10 v10.26.0 // indirect
	github.com/go-sql-driver/mysql v1.9.3 // indirect
	github.com/goccy/go-json v0.10.5 // indirect
	github.com/gofiber/fiber/v2 v2.45.0 // indirect
	github.com/gofiber/fiber/v3 v3.0.0 // indirect
	github.com/gofiber/schema v1.6.0 // indirect
	github.com/gofiber/utils/v2 v2.0.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.26.3 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.9.1 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/klauspost/compress v1.18.3 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/labstack/echo/v4 v4.12.0 // indirect
	github.com/labstack/echo/v5 v5.0.0 // indirect
	github.com/labstack/gommon v0.4.2 // indirect
	github.com/leodido/go-urn v1.4.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/redis/go-redis/v9 v9.20.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/reprise-go/reprise/adapters/echo v0.0.0
	github.com/reprise-go/reprise/adapters/echo5 v0.0.0
	github.com/reprise-go/reprise/adapters/fiber v0.0.0
	github.com/reprise-go/reprise/adapters/fiber3 v0.0.0
	github.com/reprise-go/reprise/adapters/gin v0.0.0
	github.com/reprise-go/reprise/adapters/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/adapters/internal/fasthttp v0.0.0 // indirect
	github.com/reprise-go/reprise/adapters/nethttp v0.0.0
	github.com/reprise-go/reprise/servers v0.0.0 // indirect
	github.com/reprise-go/reprise/store/internal v0.0.0 // indirect
	github.com/reprise-go/reprise/store/mysql v0.0.0 // indirect
	github.com/reprise-go/reprise/store/postgres v0.0.0 // indirect
	github.com/reprise-go/reprise/store/redis v0.0.0 // indirect
	github.com/reprise-go/reprise/store/sqlite v0.0.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/savsgio/dictpool v0.0.0-20221023140959-7bf2e61cea94 // indirect
	github.com/savsgio/gotils v0.0.0-20230208104028-c358bd845dee // indirect
	github.com/tinylib/msgp v1.6.3 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/ugorji/go/codec v1.2.12 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasthttp v1.69.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	go.etcd.io/etcd/api/v3 v3.6.5 // indirect
	go.etcd.io/etcd/client/pkg/v3 v3.6.5 // indirect
	go.etcd.io/etcd/client/v3 v3.6.5 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.0 // indirect
	golang.org/x/arch v0.16.0 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/exp v0.0.0-20251023183803-a4bb9ffd2546 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20250303144028-a0af3efb3deb // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250303144028-a0af3efb3deb // indirect
	google.golang.org/grpc v1.71.1 // indirect
	google.golang.org/protobuf v1.36.9 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	modernc.org/libc v1.67.6 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
	modernc.org/sqlite v1.46.1 // indirect
)

replace (
	github.com/reprise-go/reprise/adapters/echo => ../../../adapters/echo
	github.com/reprise-go/reprise/adapters/echo5 => ../../../adapters/echo5
	github.com/reprise-go/reprise/adapters/fiber => ../../../adapters/fiber
	github.com/reprise-go/reprise/adapters/fiber3 => ../../../adapters/fiber3
	github.com/reprise-go/reprise/adapters/gin => ../../../adapters/gin
	github.com/reprise-go/reprise/adapters/internal => ../../../adapters/internal
	github.com/reprise-go/reprise/adapters/internal/fasthttp => ../../../adapters/internal/fasthttp
	github.com/reprise-go/reprise/adapters/nethttp => ../../../adapters/nethttp
	github.com/reprise-go/reprise/client => ../../../client
	github.com/reprise-go/reprise/conformance => ../../../conformance
	github.com/reprise-go/reprise/core => ../../../core
	github.com/reprise-go/reprise/lab => ../..
	github.com/reprise-go/reprise/lab/echo => ../../echo
	github.com/reprise-go/reprise/lab/echo5 => ../../echo5
	github.com/reprise-go/reprise/lab/etcd => ..
	github.com/reprise-go/reprise/lab/fiber => ../../fiber
	github.com/reprise-go/reprise/lab/fiber3 => ../../fiber3
	github.com/reprise-go/reprise/lab/gin => ../../gin
	github.com/reprise-go/reprise/lab/nethttp => ../../nethttp
	github.com/reprise-go/reprise/proxy => ../../../proxy
	github.com/reprise-go/reprise/reprisetest => ../../../reprisetest
	github.com/reprise-go/reprise/store/etcd => ../../../store/etcd
	github.com/reprise-go/reprise/store/internal => ../../../store/internal
	github.com/reprise-go/reprise/store/mysql => ../../../store/mysql
	github.com/reprise-go/reprise/store/postgres => ../../../store/postgres
	github.com/reprise-go/reprise/store/redis => ../../../store/redis
	github.com/reprise-go/reprise/store/sqlite => ../../../store/sqlite
)

replace github.com/reprise-go/reprise/servers => ../../../servers
