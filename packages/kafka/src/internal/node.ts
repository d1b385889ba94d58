/** The client of one node: a connection for fetches, which the node may hold back, and one for every other request. */
import { ClientFailure, type Sockets, type Transport } from "@eventbus/kafka-client"
import type { Connection } from "./connection.ts"
import { openConnection, type Ready } from "./openConnection.ts"

const fetchApi = 1

const closed = ClientFailure.failure(ClientFailure.Local.connection, "the client closed the connection")

/** One of the two connections. It is opened when it is needed, and again when it has ended. */
interface Lane {
  readonly ready: () => Connection | undefined
  readonly open: () => Promise<Connection>
  readonly endWhenIdle: () => Promise<void>
  readonly endAtOnce: () => void
}

type OpenSocket = (onOpening: (connection: Connection) => void) => Promise<Connection>

/** A connection that is not ready yet. */
interface Opening {
  readonly connection: Promise<Connection>
  socket: Connection | undefined
}

const makeLane = (openSocket: OpenSocket): Lane => {
  let current: Connection | undefined
  let opening: Opening | undefined

  const open = (): Promise<Connection> => {
    if (opening !== undefined) return opening.connection
    const attempt: Opening = {
      socket: undefined,
      connection: openSocket((socket) => {
        attempt.socket = socket
        if (opening !== attempt) socket.end(closed)
      }).then(
        (connection) => {
          if (opening === attempt) [current, opening] = [connection, undefined]
          return connection
        },
        (thrown) => {
          if (opening === attempt) opening = undefined
          throw thrown
        }
      )
    }
    opening = attempt
    return attempt.connection
  }

  /** The connections that this lane forgets. */
  const taken = () => {
    const sockets = [current, opening?.socket].filter((socket) => socket !== undefined)
    current = undefined
    opening = undefined
    return sockets
  }

  return {
    ready: () => (current?.isOpen === true ? current : undefined),
    open,
    endWhenIdle: async () => {
      await Promise.all(taken().map((socket) => socket.endWhenIdle()))
    },
    endAtOnce: () => {
      for (const socket of taken()) socket.end(closed)
    }
  }
}

/** Connects nothing yet. */
export const makeNode = (
  address: Transport.Address,
  settings: Transport.Settings,
  sockets: Sockets.Sockets,
  log: (text: string) => void
): Transport.NodeClient => {
  const clientId = Buffer.from(settings.clientId)
  const name = `${address.host}:${address.port}`
  let spoken: Omit<Ready, "connection"> = { versions: new Map(), features: new Map() }
  const openSocket: OpenSocket = async (onOpening) => {
    try {
      const { connection, ...said } = await openConnection(address, settings, sockets, clientId, onOpening)
      spoken = said
      log(`Connected to ${name}`)
      connection.onEnd(() => log(`The connection to ${name} ended: ${connection.why.detail}`))
      return connection
    } catch (thrown) {
      log(`No connection to ${name}: ${ClientFailure.fromThrown(thrown).detail}`)
      throw thrown
    }
  }
  const fetches = makeLane(openSocket)
  const others = makeLane(openSocket)

  const send = <A>(request: Transport.Request<A>): Promise<A> => {
    const lane = request.apiKey === fetchApi ? fetches : others
    const timeoutMillis = Math.max(settings.requestTimeoutMillis, request.timeoutMillis ?? 0)
    const ready = lane.ready()
    if (ready !== undefined) return ready.send(request, timeoutMillis)
    return lane.open().then((connection) => connection.send(request, timeoutMillis))
  }

  return {
    ...address,
    send,
    connect: async () => {
      if (others.ready() === undefined) await others.open()
    },
    isConnected: () => others.ready() !== undefined,
    isBusy: () => others.ready()?.isBusy === true,
    versionsOf: (apiKey) => spoken.versions.get(apiKey),
    features: async () => spoken.features,
    disconnect: async () => {
      await Promise.all([fetches.endWhenIdle(), others.endWhenIdle()])
    },
    closeAtOnce: () => {
      fetches.endAtOnce()
      others.endAtOnce()
    }
  }
}
