/* Holds a pod's namespaces, and reaps the pod's orphans where they share its process namespace. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void quit(int signal) {
	(void)signal;
	_exit(0);
}

static void reap(int signal) {
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void) {
	signal(SIGINT, quit);
	signal(SIGTERM, quit);
	signal(SIGCHLD, reap);
	for (;;)
		pause();
}
