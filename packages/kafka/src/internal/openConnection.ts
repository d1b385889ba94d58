/** Opens a connection: TCP and TLS, the versions that the node speaks, authentication. */
import { ClientFailure, Handshake, type Sockets, type Transport } from "@eventbus/kafka-client"
import { authenticate } from "./authentication.ts"
import { Connection } from "./connection.ts"
import { version } from "./version.ts"

const { failure, Local } = ClientFailure

/** A connection that is ready for requests, and what it has learned of its node. */
export interface Ready extends Pick<Handshake.ApiVersions, "versions" | "features"> {
  readonly connection: Connection
}

/** Resolves when the socket is connected. */
const connected = (
  address: Transport.Address,
  settings: Transport.Settings,
  sockets: Sockets.Sockets,
  clientId: Buffer,
  onOpening: (connection: Connection) => void
): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const onConnect = () => {
      clearTimeout(timer)
      resolve(connection)
    }
    const connection: Connection = new Connection((reader) => sockets.open(address, onConnect, reader), clientId)
    const timer = setTimeout(
      () => end(failure(Local.connection, ClientFailure.notAccepted)),
      settings.connectionTimeoutMillis
    )
    const end = (why: ClientFailure.ClientFailure): void => {
      reject(why)
      connection.end(why)
    }
    connection.onEnd(() => {
      clearTimeout(timer)
      reject(connection.why)
    })
    onOpening(connection)
  })

const named = Handshake.apiVersions({ name: "eventbus-connector", version })

/** Names this client to the node (KIP-511). A node that does not know that request is asked again, in the version that every node speaks. */
const versionsOf = async (connection: Connection, timeoutMillis: number): Promise<Handshake.ApiVersions> => {
  const first = await connection.send(named, timeoutMillis)
  const isOld = first.errorCode === Handshake.unsupportedVersion
  const answer = isOld ? await connection.send(Handshake.oldestApiVersions, timeoutMillis) : first
  if (answer.errorCode === 0) return answer
  const { apiVersion } = isOld ? Handshake.oldestApiVersions : named
  throw failure("UNSUPPORTED_VERSION", `the broker answered error ${answer.errorCode} to ApiVersions ${apiVersion}`)
}

const makeReady = async (connection: Connection, settings: Transport.Settings): Promise<Ready> => {
  const { connectionTimeoutMillis, requestTimeoutMillis, sasl } = settings
  const timeoutMillis = Math.min(connectionTimeoutMillis, requestTimeoutMillis)
  const { versions, features } = await versionsOf(connection, timeoutMillis)
  if (sasl !== undefined) await authenticate(connection, sasl, timeoutMillis)
  return { connection, versions, features }
}

/** `onOpening` gets the connection before it is ready, so that it can be closed then. Rejects with a `ClientFailure`. */
export const openConnection = async (
  address: Transport.Address,
  settings: Transport.Settings,
  sockets: Sockets.Sockets,
  clientId: Buffer,
  onOpening: (connection: Connection) => void
): Promise<Ready> => {
  let opened: Connection | undefined
  try {
    await sockets.prepare()
    opened = await connected(address, settings, sockets, clientId, onOpening)
    return await makeReady(opened, settings)
  } catch (thrown) {
    const failed = ClientFailure.fromThrown(thrown)
    opened?.end(failed)
    throw failed
  }
}
