/**
 * Hono: the admin API, probes and metrics beside the routes of the program.
 *
 *   node packages/examples/src/recipes/hono.ts
 */
import { serve } from "@hono/node-server"
import { getConnInfo } from "@hono/node-server/conninfo"
import { Hono } from "hono"
import { admin, bus, listens, orders, port, stopAtSigterm } from "./bus.ts"

const app = new Hono()
for (const path of ["/eventbus/*", "/health/*", "/metrics"]) {
  app.all(path, (context) => admin.handler(context.req.raw, { remoteAddress: getConnInfo(context).remote.address }))
}
app.post("/orders/:id", async (context) => {
  await bus.publish(orders, { key: "ann", value: { id: context.req.param("id") } })
  return context.body(null, 202)
})

const server = serve({ fetch: app.fetch, port }, (address) => listens(address.port))
stopAtSigterm(() => server.close())
await bus.start()
