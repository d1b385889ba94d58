/**
 * A caller that holds a stream open and reads nothing of it: its connection would stay for as long as the process, since no event reaches it, not even the last one.
 */
import type { ServerResponse } from "node:http"

/** Four heartbeats, none of which has left this machine. */
const stuckMillis = 60_000

/** Closes the connection once nothing has gone over it for `millis`. Node.js sets the time back when the response has ended. */
export const end = (response: Pick<ServerResponse, "setTimeout" | "destroy">, millis: number = stuckMillis): void => {
  response.setTimeout(millis, () => void response.destroy())
}
