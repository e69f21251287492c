// Serves POST /judged for reprise judge, behind an idempotency package of npm that is
// wired as its README shows. The endpoint follows programs, and GET /executions counts its
// runs: docs/guides/judge.md describes both.
//
//	node judged.js PEER [ADDR of Redis]
//
// PEER is express-idempotency, express-idempotency-redis, nestjs-memory, nestjs-redis or
// idempotency-backend.
"use strict";

const maxBody = "8mb"; // of a request: the default of Express, 100 kB, would hide what a package does with more

let runs = 0;

// run starts a run of the endpoint: it marks the response, and waits as the program says.
async function run(request, response) {
  const mark = String(++runs);
  const program = JSON.parse(request.headers["x-test-program"] ?? "{}");
  response.setHeader("X-Exec", mark);
  await new Promise((done) => setTimeout(done, program.delay_ms ?? 0));
  for (const [name, value] of program.headers ?? []) {
    const before = response.getHeader(name);
    response.setHeader(name, before === undefined ? value : [].concat(before, value));
  }
  if (program.behaviour === "abort") {
    response.writeHead(program.status ?? 201, { "Content-Length": 100 });
    response.write("cut", () => response.socket.destroy());
    return null;
  }
  const body =
    program.body_base64 !== undefined ? Buffer.from(program.body_base64, "base64") : program.body_size ? Buffer.alloc(program.body_size, "x") : undefined;
  return { status: program.status ?? 201, body, result: { id: mark } };
}

// handle runs the endpoint in Express. Its packages keep the arguments of send and json.
async function handle(request, response, save = () => {}) {
  const { status, body, result } = (await run(request, response)) ?? {};
  if (status === undefined) return;
  response.status(status);
  if (status === 204) {
    response.send();
  } else if (body !== undefined) {
    await save(body);
    response.send(body);
  } else {
    await save(result);
    response.json(result);
  }
}

const failing = (handler) => (request, response, next) => handler(request, response).catch(next);

// expressIdempotency has the handler that the README of express-idempotency shows.
function expressIdempotency(app) {
  const { getSharedIdempotencyService } = require("express-idempotency");
  app.post("/judged", failing(async (request, response) => {
    if (!getSharedIdempotencyService().isHit(request)) await handle(request, response);
  }));
}

const services = {
  "express-idempotency": (app) => {
    app.post("*", require("express-idempotency").idempotency());
    expressIdempotency(app);
  },

  "express-idempotency-redis": async (app, address) => {
    const RedisAdapter = require("express-idempotency-redis-adapter").default;
    const dataAdapter = new RedisAdapter({ connectionConfig: { url: `redis://${address}` } });
    await dataAdapter.connect();
    app.use(require("express-idempotency").idempotency({ dataAdapter }));
    expressIdempotency(app);
  },

  "idempotency-backend": (app) => {
    app.use(require("idempotency-backend/express").default);
    app.post("/judged", failing((request, response) => handle(request, response, (result) => request.idempotencySession.SaveResponse(result))));
  },
};

async function express(variant, address) {
  const framework = require("express");
  const app = framework();
  app.get("/executions", (_, response) => response.send(String(runs)));
  app.use(framework.json({ limit: maxBody }));
  await services[variant](app, address);
  return new Promise((done) => {
    const server = app.listen(0, "127.0.0.1", () => done(server));
  });
}

// nest has the plugin of NestJS over a store. Its handlers return values and throw errors,
// both of which the plugin keeps.
async function nest(adapter, address) {
  require("reflect-metadata");
  const { Controller, Get, Post, Req, Res, HttpException, Module } = require("@nestjs/common");
  const { NestFactory } = require("@nestjs/core");
  const { NodeIdempotencyModule, NodeIdempotencyInterceptor, Idempotent } = require("@node-idempotency/nestjs");

  class Judged {
    async judged(request, response) {
      const { status, body, result } = (await run(request, response)) ?? {};
      if (status === undefined) return new Promise(() => {});
      const value = body === undefined ? result : body.toString("latin1");
      if (status >= 400) throw new HttpException(value, status);
      response.status(status);
      return status === 204 ? undefined : value;
    }

    executions() {
      return String(runs);
    }
  }
  const decorate = (name, method, ...others) => {
    for (const decorator of [method, ...others]) decorator(Judged.prototype, name, Object.getOwnPropertyDescriptor(Judged.prototype, name));
  };
  Req()(Judged.prototype, "judged", 0);
  Res({ passthrough: true })(Judged.prototype, "judged", 1);
  decorate("judged", Post("judged"), Idempotent());
  decorate("executions", Get("executions"));
  Controller()(Judged);

  class App {}
  const storage = { adapter, options: adapter === "redis" ? { url: `redis://${address}` } : {} };
  Module({ imports: [NodeIdempotencyModule.forRootAsync({ storage })], controllers: [Judged] })(App);
  const app = await NestFactory.create(App, { logger: ["error"] });
  app.useBodyParser("json", { limit: maxBody });
  await app.listen(0, "127.0.0.1");
  return app.getHttpServer();
}

async function main([variant, address]) {
  const server = variant.startsWith("nestjs-") ? await nest(variant.slice("nestjs-".length), address) : await express(variant, address);
  console.log(`listening on 127.0.0.1:${server.address().port}`);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
