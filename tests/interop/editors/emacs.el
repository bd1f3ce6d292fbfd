;;; emacs.el --- Emacs and its jsonrpc.el as a client of the bus  -*- lexical-binding: t -*-

;; Run by editors.test.mjs: emacs -Q --batch -l emacs.el, with the bus's command line, as a JSON
;; array, in BUS_COMMAND. Prints "ok" at the end; any failure is an error and ends Emacs.

(require 'cl-lib)
(require 'json)
(require 'jsonrpc)

(defvar bus-command (append (json-read-from-string (getenv "BUS_COMMAND")) nil))
(defvar bus-deadline 30 "Seconds that anything may take that surely comes.")

(defun bus-wait (what condition)
  "Let input come in until CONDITION holds; WHAT is for the message that it did not."
  (let ((end (+ (float-time) bus-deadline)))
    (while (not (funcall condition))
      (when (> (float-time) end)
        (error "Waited in vain for %s" what))
      (accept-process-output nil 0.05))))

(let ((connection
        (make-instance
         'jsonrpc-process-connection
         :name "bus"
         :events-buffer-scrollback-size 0
         :request-dispatcher (lambda (&rest _) (error "A request that nobody sent"))
         :notification-dispatcher (lambda (&rest _) (error "A notification that nobody sent"))
         :process (lambda ()
                    (make-process :name "bus" :command bus-command :connection-type 'pipe
                                  :coding 'utf-8-emacs-unix :noquery t
                                  :stderr (get-buffer-create " *bus log*"))))))
  ;; Requests.
  (cl-assert (equal (jsonrpc-request connection :echo '(:text "äöü €" :n 1) :timeout bus-deadline)
                    '(:text "äöü €" :n 1)))

  ;; Notifications.
  (dotimes (i 3)
    (jsonrpc-notify connection :note (list :n i)))
  (cl-assert (eql (jsonrpc-request connection :count nil :timeout bus-deadline) 3))

  ;; An error reply.
  (let ((problem (condition-case problem
                     (progn (jsonrpc-request connection :nothing nil :timeout bus-deadline) nil)
                   (jsonrpc-error problem))))
    (cl-assert (eql (alist-get 'jsonrpc-error-code (cdr problem)) -32601))
    (cl-assert (equal (alist-get 'jsonrpc-error-message (cdr problem)) "no method nothing")))

  ;; 200 KB, none of it ASCII.
  (let ((text (apply #'concat (make-list 20000 "äö€😀"))))
    (cl-assert (> (string-bytes text) 200000))
    (cl-assert (equal (jsonrpc-request connection :echo (list :text text) :timeout bus-deadline)
                      (list :text text))))

  ;; Ten requests in flight.
  (let (answers)
    (dotimes (i 10)
      (jsonrpc-async-request connection :echo (list :n i)
                             :success-fn (lambda (result) (push (plist-get result :n) answers))
                             :error-fn (lambda (problem) (error "An error: %S" problem))
                             :timeout bus-deadline))
    (bus-wait "ten answers" (lambda () (= (length answers) 10)))
    (cl-assert (equal (sort answers #'<) (number-sequence 0 9))))

  ;; The end: the bus ends with its input, and with status 0.
  (let ((process (jsonrpc--process connection)))
    (process-send-eof process)
    (bus-wait "the end" (lambda () (not (process-live-p process))))
    (cl-assert (eql (process-exit-status process) 0)))
  (princ "ok\n"))
