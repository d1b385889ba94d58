/** Queues jobs on documents, in order for each document. */
import { Effect } from "effect"
import * as DocumentProcessing from "../messages/documentProcessing.ts"
import { documents } from "../topics.ts"
import { send } from "./sending.ts"

const queue = (job: Effect.Effect<DocumentProcessing.DocumentProcessingMessage>) =>
  Effect.flatMap(job, (message) => send(message, documents, message.documentId))

/** Read the text of an image, priority `NORMAL`. */
export const queueForOcr = (...document: DocumentProcessing.Document) => queue(DocumentProcessing.forOcr(...document))

/** Extract the text of a document, priority `NORMAL`. */
export const queueForTextExtraction = (...document: DocumentProcessing.Document) =>
  queue(DocumentProcessing.forTextExtraction(...document))

const highPriorityOcr = DocumentProcessing.job("OCR_EXTRACTION", "HIGH")

/** Read the text of an image for somebody who waits: priority `HIGH`. */
export const queueHighPriorityOcr = (...document: DocumentProcessing.Document) => queue(highPriorityOcr(...document))
