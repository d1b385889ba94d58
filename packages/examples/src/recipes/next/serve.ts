/**
 * In the place of `next start`, which costs a build: calls `register`, then answers each request by the route file of its path, as Next does.
 *
 *   node packages/examples/src/recipes/next/serve.ts
 */
import { serve } from "@hono/node-server"
import { Hono } from "hono"
import { listens, port } from "../bus.ts"
import * as eventbus from "./app/eventbus/[...path]/route.ts"
import * as health from "./app/health/[probe]/route.ts"
import * as metrics from "./app/metrics/route.ts"
import * as orders from "./app/orders/[id]/route.ts"
import { register } from "./instrumentation.ts"

process.env["NEXT_RUNTIME"] = "nodejs"
const app = new Hono()
  .get("/eventbus/*", (context) => eventbus.GET(context.req.raw))
  .post("/eventbus/*", (context) => eventbus.POST(context.req.raw))
  .get("/health/:probe", (context) => health.GET(context.req.raw))
  .get("/metrics", (context) => metrics.GET(context.req.raw))
  .post("/orders/:id", (context) => orders.POST(context.req.raw, { params: Promise.resolve(context.req.param()) }))

serve({ fetch: app.fetch, port }, (address) => listens(address.port))
await register()
