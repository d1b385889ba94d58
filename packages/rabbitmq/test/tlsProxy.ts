/** TLS in front of RabbitMQ. */
import { type AddressInfo, connect, type Socket } from "node:net"
import { createServer } from "node:tls"
import { Effect, type Scope } from "effect"

/** Takes TLS connections for an address, `host:port`. Answers its own address. */
export const tlsProxyTo = (
  target: string,
  certificate: { readonly key: string; readonly cert: string }
): Effect.Effect<string, never, Scope.Scope> => {
  const at = target.lastIndexOf(":")
  const sockets = new Set<Socket>()
  const server = createServer(certificate, (inner) => {
    const outer = connect(Number(target.slice(at + 1)), target.slice(0, at))
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket.on("error", () => {}).on("close", () => [inner, outer].map((each) => each.destroy()))
    }
    inner.pipe(outer).pipe(inner)
  })
  return Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(`localhost:${(server.address() as AddressInfo).port}`)))
    }),
    () =>
      Effect.sync(() => {
        for (const socket of sockets) socket.destroy()
        server.close()
      })
  )
}
