/** The admin API on a socket. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { AdminWeb } from "@eventbus/admin"
import { Effect } from "effect"

/** Its address. */
export const served = ({ nodeListener }: Pick<AdminWeb.AdminWeb, "nodeListener">) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(nodeListener).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close().closeAllConnections())
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))
