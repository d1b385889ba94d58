/**
 * Fastify: the admin API, probes and metrics beside the routes of the program.
 *
 *   node packages/examples/src/recipes/fastify.ts
 */
import type { AddressInfo } from "node:net"
import fastify from "fastify"
import { admin, bus, listens, orders, port, stopAtSigterm } from "./bus.ts"

const app = fastify()
for (const path of ["/eventbus/*", "/health/*", "/metrics"]) {
  app.all(path, (request, reply) => {
    reply.hijack()
    // Fastify has read the body, so it is handed on.
    admin.nodeListener(Object.assign(request.raw, { body: request.body }), reply.raw)
  })
}
app.post<{ Params: { id: string } }>("/orders/:id", async (request, reply) => {
  await bus.publish(orders, { key: "ann", value: { id: request.params.id } })
  return reply.code(202).send()
})

stopAtSigterm(() => app.close())
await app.listen({ port })
listens((app.server.address() as AddressInfo).port)
await bus.start()
