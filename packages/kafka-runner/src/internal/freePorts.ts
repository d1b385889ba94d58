import { createServer } from "node:net"
import { Effect } from "effect"

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/**
 * The first `count` free ports from `from` on.
 *
 * Stay below 32768, where systems take the ports of outgoing connections from: a killed broker must find its port free again.
 */
export const freePorts = (count: number, from: number): Effect.Effect<ReadonlyArray<number>> =>
  Effect.promise(async () => {
    const ports: Array<number> = []
    for (let port = from; ports.length < count; port++) if (await isFree(port)) ports.push(port)
    return ports
  })

/** Somewhere between 20000 and 29999: two processes that look at the same time rarely choose the same. */
export const randomStart = (): number => 20_000 + Math.floor(Math.random() * 9_900)
