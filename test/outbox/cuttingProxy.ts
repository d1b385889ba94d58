/** A TCP proxy before PostgreSQL that cuts a connection at a chosen moment: around a statement's way there, or around its answer's way back. */
import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { pgLogin } from "./clients.ts"

/** `request`: what carries this text never arrives. `answer`: what carries this text took effect, and nobody hears of it. */
export interface Cut {
  readonly at: "request" | "answer"
  readonly text: string
}

export interface CuttingProxy {
  readonly host: string
  readonly port: number
  /** Cuts the next connection on which the text passes, once. */
  readonly arm: (cut: Cut) => Effect.Effect<void>
  /** Cuts so far. */
  readonly cuts: () => number
}

export const make: Effect.Effect<CuttingProxy, never, Scope.Scope> = Effect.gen(function* () {
  let armed: Cut | undefined
  let cuts = 0
  const open = new Set<Socket>()
  /** Whether these bytes are where the connection ends. */
  const isCut = (at: Cut["at"], bytes: Buffer): boolean => {
    if (armed?.at !== at || !bytes.includes(armed.text)) return false
    armed = undefined
    cuts++
    return true
  }
  const server = createServer((client) => {
    const upstream = connect({ host: pgLogin.host, port: pgLogin.port })
    const end = () => {
      for (const socket of [client, upstream]) {
        open.delete(socket)
        socket.destroy()
      }
    }
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on("error", end).on("close", end)
    }
    client.on("data", (bytes) => (isCut("request", bytes) ? end() : upstream.write(bytes)))
    upstream.on("data", (bytes) => (isCut("answer", bytes) ? end() : client.write(bytes)))
  })
  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    }),
    () =>
      Effect.sync(() => {
        server.close()
        for (const socket of open) socket.destroy()
      })
  )
  return {
    host: "127.0.0.1",
    port,
    arm: (cut) =>
      Effect.sync(() => {
        armed = cut
      }),
    cuts: () => cuts
  }
})
