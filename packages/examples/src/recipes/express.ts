/**
 * Express: the admin API, probes and metrics beside the routes of the program.
 *
 *   node packages/examples/src/recipes/express.ts
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import express from "express"
import { admin, bus, listens, orders, port, stopAtSigterm } from "./bus.ts"

const app = express()
app.use(express.json())
app.use(admin.nodeListener)
app.post("/orders/:id", async (request, response) => {
  await bus.publish(orders, { key: "ann", value: { id: request.params.id } })
  response.status(202).end()
})

const server = createServer(app)
stopAtSigterm(() => server.close().closeIdleConnections())
server.listen(port, () => listens((server.address() as AddressInfo).port))
await bus.start()
