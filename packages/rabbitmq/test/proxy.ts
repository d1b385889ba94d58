/** A proxy in front of RabbitMQ whose connections a test can cut. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

export interface Proxy {
  /** Its address, `host:port`. */
  readonly address: string
  /** Cuts all connections at once, without a goodbye. Answers how many they were. */
  readonly cut: Effect.Effect<number>
}

/** A proxy to an address, `host:port`. */
export const proxyTo = (target: string): Effect.Effect<Proxy, never, Scope.Scope> => {
  const at = target.lastIndexOf(":")
  const [host, port] = [target.slice(0, at), Number(target.slice(at + 1))]
  const sockets = new Set<Socket>()
  const kept = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on("error", () => {}).on("close", () => sockets.delete(socket))
  }
  const cut = Effect.sync(() => {
    const count = Math.floor(sockets.size / 2)
    for (const socket of sockets) socket.resetAndDestroy()
    return count
  })
  return Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((inner) => {
        const outer = kept(connect(port, host))
        kept(inner).pipe(outer).pipe(inner)
        inner.on("close", () => outer.destroy())
        outer.on("close", () => inner.destroy())
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.andThen(
        cut,
        Effect.sync(() => server.close())
      )
  ).pipe(Effect.map((server) => ({ address: `127.0.0.1:${(server.address() as AddressInfo).port}`, cut })))
}
