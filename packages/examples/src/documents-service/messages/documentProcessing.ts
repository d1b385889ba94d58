/** A job on a document. */
import { DateTime, Effect, Schema } from "effect"

export const ProcessingType = Schema.Literals([
  "OCR_EXTRACTION",
  "TEXT_EXTRACTION",
  "IMAGE_ANALYSIS",
  "PDF_CONVERSION",
  "THUMBNAIL_GENERATION"
])
export type ProcessingType = typeof ProcessingType.Type

export const ProcessingPriority = Schema.Literals(["HIGH", "NORMAL", "LOW"])
export type ProcessingPriority = typeof ProcessingPriority.Type

/** Where a document is, and whose it is. */
const place = {
  documentId: Schema.NonEmptyString,
  userId: Schema.NonEmptyString,
  s3Key: Schema.NonEmptyString,
  bucketName: Schema.NonEmptyString,
  fileName: Schema.NonEmptyString,
  mimeType: Schema.NonEmptyString
}

export class DocumentProcessingMessage extends Schema.Class<DocumentProcessingMessage>("DocumentProcessingMessage")({
  ...place,
  processingType: ProcessingType,
  /** Further parameters of the job. */
  metadata: Schema.Record(Schema.String, Schema.String),
  /** When the job was asked for. */
  requestedAt: Schema.DateTimeUtcFromString,
  priority: ProcessingPriority
}) {
  /** A copy with these parameters. */
  withMetadata(metadata: Readonly<Record<string, string>>): DocumentProcessingMessage {
    return new DocumentProcessingMessage({ ...this, metadata })
  }
}

/** Id, owner, S3 key, bucket, file name and MIME type of a document. */
export type Document = readonly [
  documentId: string,
  userId: string,
  s3Key: string,
  bucketName: string,
  fileName: string,
  mimeType: string
]

/** A job of any type and priority. */
export const job =
  (processingType: ProcessingType, priority: ProcessingPriority) =>
  (...[documentId, userId, s3Key, bucketName, fileName, mimeType]: Document) =>
    Effect.map(
      DateTime.now,
      (requestedAt) =>
        new DocumentProcessingMessage({
          ...{ documentId, userId, s3Key, bucketName, fileName, mimeType },
          ...{ processingType, priority, metadata: {}, requestedAt }
        })
    )

/** Read the text of an image, priority `NORMAL`. */
export const forOcr = job("OCR_EXTRACTION", "NORMAL")

/** Extract the text of a document, priority `NORMAL`. */
export const forTextExtraction = job("TEXT_EXTRACTION", "NORMAL")
