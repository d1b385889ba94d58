/** The address of the admin API on a socket, for as long as the scope. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { AdminWeb } from "@eventbus/admin"
import { Effect } from "effect"

export const served = (web: AdminWeb.AdminWeb) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(web.nodeListener).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close().closeAllConnections())
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))
