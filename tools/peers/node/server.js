// Serves POST /t/orders on Express: bare, or behind an idempotency package of npm.
//
//	node server.js bare | node-idempotency-memory | node-idempotency-redis ADDR | express-idempotency
"use strict";

const express = require("express");

const body =
  '{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",' +
  '"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}';

function create(request, response) {
  response.status(201).type("application/json").send(body);
}

// nodeIdempotency is what the README of @node-idempotency/core says, for Express.
async function nodeIdempotency(storage) {
  const { Idempotency } = require("@node-idempotency/core");
  const idempotency = new Idempotency(storage, { cacheTTLMS: 24 * 3600 * 1000 });
  return async (request, response, next) => {
    const asked = { headers: request.headers, path: request.path, body: request.body, method: request.method };
    try {
      const kept = await idempotency.onRequest(asked);
      if (kept) {
        response.status(kept.additional.status).type("application/json").send(kept.body);
        return;
      }
    } catch (error) {
      response.status(409).send(error.message);
      return;
    }
    const send = response.send.bind(response);
    response.send = (content) => {
      response.send = send;
      idempotency.onResponse(asked, { body: content, additional: { status: response.statusCode } }).then(() => send(content), next);
      return response;
    };
    next();
  };
}

async function main([variant, address]) {
  const app = express();
  app.disable("x-powered-by");
  app.use(express.json());
  switch (variant) {
    case "bare":
      app.post("/t/orders", create);
      break;
    case "node-idempotency-memory": {
      const { MemoryStorageAdapter } = require("@node-idempotency/storage-adapter-memory");
      app.post("/t/orders", await nodeIdempotency(new MemoryStorageAdapter()), create);
      break;
    }
    case "node-idempotency-redis": {
      const { RedisStorageAdapter } = require("@node-idempotency/storage-adapter-redis");
      const storage = new RedisStorageAdapter({ url: `redis://${address}` });
      await storage.connect();
      app.post("/t/orders", await nodeIdempotency(storage), create);
      break;
    }
    case "express-idempotency": {
      const { idempotency, getSharedIdempotencyService } = require("express-idempotency");
      app.post("/t/orders", idempotency(), (request, response) => {
        if (!getSharedIdempotencyService().isHit(request)) {
          create(request, response);
        }
      });
      break;
    }
    default:
      throw new Error(`no variant ${variant}`);
  }
  const server = app.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
  server.keepAliveTimeout = 0;
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
