// Prints what the kstatus library makes of each object that comes in as a line of JSON, one verdict a line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func judge(objects io.Reader, verdicts io.Writer) error {
	// A decoder takes one object after the other, however long their lines are.
	decoder := json.NewDecoder(bufio.NewReader(objects))
	for {
		var text json.RawMessage
		if err := decoder.Decode(&text); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(text); err != nil {
			return err
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		fmt.Fprintln(verdicts, result.Status)
	}
}
