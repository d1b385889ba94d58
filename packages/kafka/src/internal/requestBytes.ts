/** A request as it goes to the socket: length, header and body. */
import type { Transport } from "@eventbus/kafka-client"

const lengthBytes = 4

/** The bytes before a body: length, API, version, correlation id and client id; an empty list of tagged fields with a flexible version. */
const headerBytes = (clientId: Buffer, isFlexible: boolean): number =>
  lengthBytes + 2 + 2 + 4 + 2 + clientId.length + (isFlexible ? 1 : 0)

/**
 * Writes the header into the room before the body, so that the body is not copied. Where there is no room, the whole request is copied into a buffer of its
 * own.
 */
export const requestBytes = (
  { apiKey, apiVersion, encode, isFlexible }: Transport.Request<unknown>,
  correlationId: number,
  clientId: Buffer
): Buffer => {
  const { bytes, whole } = encode()
  const header = headerBytes(clientId, isFlexible)
  const begin = whole === undefined ? -1 : whole.length - bytes.length - header
  const request = whole !== undefined && begin >= 0 ? whole.subarray(begin) : Buffer.allocUnsafe(header + bytes.length)
  if (begin < 0) bytes.copy(request, header)
  let at = request.writeInt32BE(request.length - lengthBytes, 0)
  at = request.writeInt16BE(apiKey, at)
  at = request.writeInt16BE(apiVersion, at)
  at = request.writeInt32BE(correlationId, at)
  at = request.writeInt16BE(clientId.length, at)
  at += clientId.copy(request, at)
  if (isFlexible) request.writeInt8(0, at)
  return request
}
