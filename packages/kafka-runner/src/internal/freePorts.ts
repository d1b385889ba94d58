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
 * Choose `from` well below 32768. Systems use higher ports for outgoing connections, and a killed broker must find its port free again.
 */
export const freePorts = (count: number, from: number): Effect.Effect<ReadonlyArray<number>> =>
  Effect.promise(async () => {
    const ports: Array<number> = []
    for (let port = from; ports.length < count; port++) if (await isFree(port)) ports.push(port)
    return ports
  })

/** A random port from 20000 to 29899, so that two processes rarely search the same ports at the same time. */
export const randomStart = (): number => 20_000 + Math.floor(Math.random() * 9_900)
