/** The sockets of one client, in plain text or with TLS, which every transport uses. */
import dns, { type LookupAddress } from "node:dns"
import * as net from "node:net"
import * as tls from "node:tls"
import { failure, Local } from "./ClientFailure.ts"
import type { Address } from "./Transport.ts"

/** A socket that reads into room of its user instead of emitting `data`. */
export interface Reader {
  /** Where the next bytes go: at least one byte. */
  readonly room: () => Uint8Array
  /** So many bytes have come into the room that was given last. */
  readonly take: (bytes: number) => void
}

/** The sockets of one client. */
export interface Sockets {
  /** Reads the TLS options of the next socket. Must have succeeded before each `open`. Rejects with a `ClientFailure`, also after `destroyAll`. */
  readonly prepare: () => Promise<void>
  /** Opens a socket. `onConnect` runs when it is connected, and with TLS when the handshake is done. With a `reader`, the socket emits no `data`. */
  readonly open: (address: Address, onConnect: () => void, reader?: Reader) => net.Socket
  /** As `Transport.addressCount`. */
  readonly addressCount: (host: string) => Promise<number>
  /** Closes every socket at once. */
  readonly destroyAll: () => void
}

/** Ends a plain socket whose first bytes are those of a TLS alert, in any TLS version: they would be taken for the length of an answer. */
const refuseAlert = (socket: net.Socket, firstBytes: Uint8Array): void => {
  if (firstBytes[0] !== 0x15 || firstBytes[1] !== 0x03) return
  socket.destroy(Object.assign(new Error("the listener speaks TLS: set `ssl`"), { code: "ERR_SSL_EXPECTED" }))
}

const addressesOf = (host: string): Promise<ReadonlyArray<LookupAddress>> =>
  new Promise((resolve, reject) =>
    dns.lookup(host, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)))
  )

/** Each look-up of a name begins with the next of its addresses, so that one that is silent is not met every time. */
const rotatingLookup = (): net.LookupFunction => {
  const turns = new Map<string, number>()
  return (host, { all }, callback) => {
    addressesOf(host).then(
      (found) => {
        const turn = turns.get(host) ?? 0
        turns.set(host, (turn + 1) % found.length)
        const rotated = [...found.slice(turn), ...found.slice(0, turn)]
        if (all === true) callback(null, rotated)
        else callback(null, rotated[0]!.address, rotated[0]!.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, [])
    )
  }
}

/** `readTls` returns the options of the next socket. Without it sockets use plain text. */
export const makeSockets = (readTls: (() => Promise<tls.ConnectionOptions>) | undefined): Sockets => {
  const sockets = new Set<net.Socket>()
  const lookup = rotatingLookup()
  let options: tls.ConnectionOptions | undefined
  let isClosed = false

  const open: Sockets["open"] = ({ host, port }, onConnect, reader) => {
    let mayBeAlert = options === undefined
    const onBytes = (bytes: Uint8Array) => {
      if (mayBeAlert) refuseAlert(socket, bytes)
      mayBeAlert = false
    }
    const onread = reader && {
      buffer: reader.room,
      callback: (count: number, bytes: Uint8Array) => {
        onBytes(bytes)
        reader.take(count)
        return true
      }
    }
    const address = { host, port, lookup, ...(onread && { onread }) }
    const socket =
      options === undefined
        ? net.connect(address, onConnect)
        : tls.connect({ ...address, ...(net.isIP(host) === 0 && { servername: host }), ...options }, onConnect)
    if (reader === undefined && mayBeAlert) socket.once("data", onBytes)
    socket.setKeepAlive(true, 60_000)
    // Requests are small and answered one by one. Nagle's algorithm would hold them back for a delayed ACK.
    socket.setNoDelay(true)
    // A transport may add a listener each time it closes a socket that is already closed, which happens while no broker answers.
    socket.setMaxListeners(0)
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    return socket
  }

  const prepare = async () => {
    options = await readTls?.()
    if (isClosed) throw failure(Local.connection, "the client is closed")
  }

  return {
    prepare,
    open,
    addressCount: (host) =>
      net.isIP(host) === 0
        ? addressesOf(host).then(
            ({ length }) => length,
            () => 1
          )
        : Promise.resolve(1),
    destroyAll: () => {
      isClosed = true
      for (const socket of [...sockets]) socket.destroy(new Error("closed"))
    }
  }
}
