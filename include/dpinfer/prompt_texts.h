/* prompt_texts.h - the prompts of chat models without a query. The built-in model is trained on
 * exactly these (corpus/examples.c). */
#ifndef DPI_PROMPT_TEXTS_H
#define DPI_PROMPT_TEXTS_H

/* A private prompt is the record between the first two, and the task. */
#define DPI_CHAT_BEFORE "Here is one document of a collection:\n\n"
#define DPI_CHAT_AFTER "\n\nThe document ends here.\n\n"
#define DPI_CHAT_TASK                                                                           \
    "Please write another, fictional document of the kind that the collection holds. Do not "   \
    "copy names, dates or other particulars. Output only the text of the new document."

#endif
