/**
 * A caller that holds a stream open and reads nothing of it: its connection would stay for as long as the process, since no event reaches it, not even the last one.
 */
import type { Socket } from "node:net"

/** Four heartbeats, none of which has left this machine. */
const stuckMillis = 60_000

/** Closes the connection once nothing has gone over it for `millis`, and something should have. Node.js sets the time back when a response has ended. */
export const end = (socket: Pick<Socket, "setTimeout" | "destroy">, millis: number = stuckMillis): void => {
  socket.setTimeout(millis, () => void socket.destroy())
}
